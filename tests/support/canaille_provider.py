"""The identity provider canaille on the loopback: `canaille_provider.py PORT SERVER PASSWORD`.

It knows Ann and Ben, and prints a line when it listens.

Tokens for the client `careless` have an empty audience.
"""

import datetime
import sys

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend
from joserfc.jwk import RSAKey
from werkzeug.serving import make_server


def main(port: int, server: str, password: str) -> None:
    """Serve until it is stopped."""
    key = RSAKey.generate_key(2_048, {"kid": "one", "use": "sig", "alg": "RS256"}, auto_kid=False)
    app = create_app(
        {
            "SECRET_KEY": "a secret of the tests",
            "SERVER_NAME": f"127.0.0.1:{port}",
            "PREFERRED_URL_SCHEME": "http",
            # Its scripts break its own Content-Security-Policy.
            "CANAILLE": {"DATABASE": "memory", "FORCE_HTTPS": False, "JAVASCRIPT": False},
            "CANAILLE_OIDC": {"ACTIVE_JWKS": [key.as_dict(private=True)]},
        }
    )
    with app.app_context(), Backend.instance.session():
        for name in ("ann", "ben"):
            person = models.User(
                user_name=name,
                formatted_name=name.title(),
                family_name=name.title(),
                emails=[f"{name}@example.org"],
                password=password,
                password_last_update=datetime.datetime.now(datetime.UTC),
            )
            Backend.instance.save(person)
        for client_id in ("conspectus", "careless"):
            client = models.Client(
                client_id=client_id,
                client_secret="a-secret-of-the-tests",
                client_name=client_id.title(),
                client_id_issued_at=datetime.datetime.now(datetime.UTC),
                redirect_uris=[f"{server}/sign-in/callback"],
                post_logout_redirect_uris=[f"{server}/console/"],
                grant_types=["authorization_code", "password"],
                response_types=["code"],
                scope=["openid", "profile"],
                token_endpoint_auth_method="client_secret_basic",
            )
            Backend.instance.save(client)
            if client_id == "conspectus":
                client.audience = [client]
                Backend.instance.save(client)
    http = make_server("127.0.0.1", port, app, threaded=True)
    print("ready", flush=True)
    http.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
