import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { forgetInvitation, login, readProvider, signIn, signInFailed, type Provider } from "../session";
import { asProblem } from "../ui/load";
import { Mark } from "../ui/mark";

/**
 * A form that logs in. `refused` is what it says where the server does not accept the credential, and `alternative`
 * stands below its button.
 */
function LoginForm({
  title,
  hint,
  refused,
  logIn,
  children,
  alternative,
}: {
  title: string;
  hint: string;
  refused: string;
  logIn: () => Promise<void>;
  children?: (describedBy: string | undefined) => ComponentChildren;
  alternative?: ComponentChildren;
}) {
  const [failure, fail] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await logIn();
    } catch (error) {
      const problem = asProblem(error);
      fail(problem.status === 401 ? refused : problem.message);
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
        <h1>{title}</h1>
        <p class="sub small">{hint}</p>
        {children?.(failure === "" ? undefined : "failed")}
        {failure !== "" && (
          <p id="failed" class="failed" role="alert">
            {failure}
          </p>
        )}
        <button class="btn primary" type="submit" disabled={busy}>
          Log in
        </button>
        {alternative}
      </form>
    </main>
  );
}

/** The button that leads to the identity provider, where the server has one. */
function ProviderButton() {
  const [provider, setProvider] = useState<Provider | null>(null);
  useEffect(() => {
    // Without an answer there is still the key.
    readProvider().then(setProvider, () => setProvider(null));
  }, []);
  if (provider === null) return null;
  return (
    <>
      {signInFailed && (
        <p class="failed after" role="alert">
          Signing in did not work. Try again, or ask the owner of the server: its log has the reason.
        </p>
      )}
      <button class="btn after" type="button" onClick={() => signIn(provider)}>
        Sign in with {provider.name}
      </button>
    </>
  );
}

export function Login() {
  const [key, setKey] = useState("");
  return (
    <LoginForm
      title="Log in with an API key"
      hint="The first start of the server printed the key of the owner. Others get a key or an invitation from the owner."
      refused="This API key is not valid. It may have expired or been revoked."
      logIn={() => login({ key: key.trim() })}
      alternative={<ProviderButton />}
    >
      {(describedBy) => (
        <>
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
            aria-describedby={describedBy}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </>
      )}
    </LoginForm>
  );
}

export function AcceptInvitation({ token }: { token: string }) {
  const accept = async () => {
    await login({ invitation: token });
    forgetInvitation();
  };
  return (
    <LoginForm
      title="You are invited"
      hint="The link works once, in this browser."
      refused="This invitation was used already, has expired or was withdrawn. Ask the owner for a new one."
      logIn={accept}
      alternative={
        <p class="small after">
          <button class="link" type="button" onClick={forgetInvitation}>
            Log in with an API key instead
          </button>
        </p>
      }
    />
  );
}
