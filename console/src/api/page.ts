/** The page at `/docs`: every route of the API, which can be tried there. */
import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle.js";
import "swagger-ui-dist/swagger-ui.css";
import "../styles/api.css";

const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

SwaggerUI({
  dom_id: "#api",
  url: "/openapi.json",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  filter: true,
  // Nothing is sent to a validator on another host.
  validatorUrl: null,
});
