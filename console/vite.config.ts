import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const OUT = "../src/conspectus/web/console";
const COMPRESSIBLE = /\.(js|css|svg|html)$/;

/** Writes a `.gz` in place of each asset, and beside each page. The server unpacks it for clients that do not. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    closeBundle() {
      // The packages that swagger-ui-dist has within it.
      const notices = readFileSync("node_modules/swagger-ui-dist/swagger-ui-es-bundle.js.LICENSE.txt");
      appendFileSync(join(OUT, "licenses.md"), notices);
      for (const name of readdirSync(OUT, { recursive: true }) as string[]) {
        if (!COMPRESSIBLE.test(name)) continue;
        const file = join(OUT, name);
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
        if (name.startsWith("assets")) rmSync(file);
      }
    },
  };
}

export default defineConfig({
  base: "/console/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    rolldownOptions: { input: ["index.html", "api.html"] },
    chunkSizeWarningLimit: 2000,
    license: { fileName: "licenses.md" },
    target: "es2023",
    // Data URLs and an inline polyfill would need a weaker Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  plugins: [compressed()],
  server: {
    // The server answers only what its own pages ask, so the Host header stays.
    proxy: { "/api": { target: process.env["CONSPECTUS_URL"] ?? "http://127.0.0.1:8642", changeOrigin: false } },
  },
});
