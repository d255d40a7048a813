import { State } from "../../ui/load";

export default function Graph() {
  return <State title="Graph" />;
}
