import { State } from "../../ui/load";

export default function Operations() {
  return <State title="Operations" />;
}
