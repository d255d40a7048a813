import { State } from "../../ui/load";

export default function Evaluation() {
  return <State title="Evaluation" />;
}
