import { useLayoutEffect, useRef } from "preact/hooks";

const OFF = "conspectus-keys-off";

/** Whether single keys are commands in this browser. */
export const keysAreOn = (): boolean => localStorage.getItem(OFF) === null;

export function switchKeys(on: boolean): void {
  if (on) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "yes");
}

/** Whether a key is a command, and not part of a text or of another program's shortcut. */
function isCommand(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  const writes = target.matches("input:not([type=range]):not([type=checkbox]), select, textarea");
  return keysAreOn() && !writes && !event.ctrlKey && !event.metaKey && !event.altKey && document.querySelector("dialog") === null;
}

/** Commands by their key, for as long as the component is shown. */
export function useKeys(commands: Record<string, () => void>): void {
  const current = useRef(commands);
  current.current = commands;
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const command = isCommand(event) ? current.current[event.key] : undefined;
      if (command === undefined) return;
      event.preventDefault();
      command();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
