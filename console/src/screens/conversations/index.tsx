import { State } from "../../ui/load";

export default function Conversations() {
  return <State title="Conversations" />;
}
