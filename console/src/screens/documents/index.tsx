import { State } from "../../ui/load";

export default function Documents() {
  return <State title="Documents" />;
}
