import { State } from "../../ui/load";

export default function Memory() {
  return <State title="Memory" />;
}
