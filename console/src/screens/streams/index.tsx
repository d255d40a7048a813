import { State } from "../../ui/load";

export default function Streams() {
  return <State title="Streams" />;
}
