import { State } from "../../ui/load";

export default function SeeAs() {
  return <State title="See as" />;
}
