import { State } from "../../ui/load";

export default function Chat() {
  return <State title="Chat" />;
}
