/** An identity provider on the loopback, for tests: `node oidc_provider.mjs NODE_MODULES PORT SERVER`. It prints a line when it listens. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, port, server] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(join(modules, "oidc-provider/lib/index.js")));
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "conspectus",
      client_secret: "a-secret-of-the-tests",
      redirect_uris: [`${server}/sign-in/callback`],
      post_logout_redirect_uris: [`${server}/console/`],
      backchannel_logout_uri: `${server}/sign-in/back-channel-logout`,
      backchannel_logout_session_required: true,
    },
    {
      client_id: "conspectus-cli",
      application_type: "native",
      token_endpoint_auth_method: "none",
      grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
      response_types: [],
      redirect_uris: [],
    },
  ],
  claims: { openid: ["sub"], profile: ["preferred_username"] },
  conformIdTokenClaims: false,
  scopes: ["openid", "offline_access", "read", "write", "admin"],
  // Usually it sends nothing to the loopback.
  fetch: (url, options) => fetch(url, { ...options, dispatcher: undefined }),
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: id }) }),
  features: {
    backchannelLogout: { enabled: true },
    devInteractions: { enabled: true },
    deviceFlow: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => [],
      getResourceServerInfo: (_context, resource) => ({
        audience: resource,
        scope: "read write admin",
        accessTokenFormat: "jwt",
        accessTokenTTL: 600,
      }),
    },
    revocation: { enabled: true },
    rpInitiatedLogout: { enabled: true },
  },
});
provider.on("backchannel.error", (_context, error) => console.error(error));
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
