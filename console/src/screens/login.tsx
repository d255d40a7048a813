import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { forgetInvitation, login, readProvider, sessionEnded, signIn, signInFailed, type Provider } from "../session";
import { asProblem } from "../ui/load";
import { Mark } from "../ui/mark";

/**
 * A form that logs in. `refused` is what it says where the server does not accept the credential, `first` stands
 * above its fields, and `alternative` below its button.
 */
function LoginForm({
  title,
  hint,
  refused,
  logIn,
  first,
  children,
  alternative,
}: {
  title: string;
  hint: string;
  refused: string;
  logIn: () => Promise<void>;
  first?: ComponentChildren;
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
        {first}
        <p class="sub small">{hint}</p>
        {children?.(failure === "" ? undefined : "failed")}
        {failure !== "" && (
          <p id="failed" class="failed" role="alert">
            {failure}
          </p>
        )}
        <button class={first === undefined ? "btn primary" : "btn"} type="submit" disabled={busy}>
          Log in
        </button>
        {alternative}
      </form>
    </main>
  );
}

/** The button that leads to the identity provider. It comes first: most people have no key. */
function ProviderButton({ provider }: { provider: Provider }) {
  return (
    <div class="provider">
      <button class="btn primary" type="button" onClick={() => signIn(provider)}>
        Sign in with {provider.name}
      </button>
      {signInFailed && (
        <p class="failed" role="alert">
          Signing in did not work. Try again, or ask the owner of the server: its log has the reason.
        </p>
      )}
    </div>
  );
}

const KEY_HINT =
  "The first start of the server printed the key of the owner. Others get a key or an invitation from the owner.";

function titleOf(provider: Provider | null): string {
  if (sessionEnded()) return "Your session has ended";
  return provider === null ? "Log in with an API key" : "Log in";
}

export function Login() {
  const [key, setKey] = useState("");
  const [provider, setProvider] = useState<Provider | null>();
  useEffect(() => {
    // Without an answer there is still the key.
    readProvider().then(setProvider, () => setProvider(null));
  }, []);
  if (provider === undefined) return null;
  return (
    <LoginForm
      title={titleOf(provider)}
      hint={provider === null ? KEY_HINT : "Or log in with an API key, if you have one."}
      refused="This API key is not valid. It may have expired or been revoked."
      logIn={() => login({ key: key.trim() })}
      first={provider === null ? undefined : <ProviderButton provider={provider} />}
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
