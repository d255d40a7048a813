/** Lets Node read modules of TypeScript as Vite does: their imports have no suffix. */
import { registerHooks } from "node:module";

const hasSuffix = /\.\w+$/;

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier.startsWith(".") && !hasSuffix.test(specifier) ? `${specifier}.ts` : specifier, context),
});
