import { useState } from "preact/hooks";
import { login } from "../session";
import { asProblem } from "../ui/load";
import { Mark } from "../ui/mark";

export function Login() {
  const [key, setKey] = useState("");
  const [failure, fail] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await login(key.trim());
    } catch (error) {
      const problem = asProblem(error);
      fail(problem.status === 401 ? "This API key is not valid. It may have expired or been revoked." : problem.message);
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form class="panel" onSubmit={(event) => void submit(event)}>
        <p class="brand">
          <Mark />
          Conspectus
        </p>
        <h1>Log in with an API key</h1>
        <p class="sub small">
          The first start of the server printed the key of the owner. Others get theirs from the owner.
        </p>
        <label class="label" for="key">
          API key
        </label>
        <input
          id="key"
          class="field mono"
          type="password"
          autocomplete="current-password"
          placeholder="csp_…"
          required
          value={key}
          aria-describedby={failure === "" ? undefined : "failed"}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        {failure !== "" && (
          <p id="failed" class="failed" role="alert">
            {failure}
          </p>
        )}
        <button class="btn primary" type="submit" disabled={busy}>
          Log in
        </button>
      </form>
    </main>
  );
}
