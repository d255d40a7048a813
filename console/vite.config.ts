import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const OUT = "../src/conspectus/web/console";
const COMPRESSIBLE = /\.(js|css|svg|html)$/;

/** Writes a `.gz` beside each file, which the server sends to browsers that accept it. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    closeBundle() {
      for (const name of readdirSync(OUT, { recursive: true }) as string[]) {
        if (!COMPRESSIBLE.test(name)) continue;
        const file = join(OUT, name);
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
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
