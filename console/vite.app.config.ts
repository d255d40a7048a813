import { defineConfig, type Plugin, type Rollup } from "vite";

/** Puts the script and the style sheet into the page: a client gets the MCP App as one text. */
function inlined(): Plugin {
  return {
    name: "inlined",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["window.html"] as Rollup.OutputAsset;
      let text = String(page.source);
      for (const [name, file] of Object.entries(bundle)) {
        if (file === page) continue;
        const tag = new RegExp(`<(script|link)[^>]*${name}"[^>]*>(</script>)?`);
        text = text.replace(tag, "");
        const code = file.type === "chunk" ? file.code.replaceAll("</script", "<\\/script") : String(file.source);
        const [end, inner] = file.type === "chunk" ? ["</body>", `<script type="module">${code}</script>`] : ["</head>", `<style>${code}</style>`];
        text = text.replace(end, () => `${inner}${end}`);
        delete bundle[name];
      }
      page.source = text;
    },
  };
}

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/conspectus/mcp",
    emptyOutDir: false,
    copyPublicDir: false,
    target: "es2023",
    modulePreload: { polyfill: false },
    rollupOptions: { input: "window.html" },
  },
  plugins: [inlined()],
});
