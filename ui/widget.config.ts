// Builds the picture of notebooks and of pages on their own: one script that imports nothing, and its style.
import { copyFileSync } from "node:fs";
import { defineConfig } from "vite";

const OUT = "../src/omnigraph/graph/picture_files";

export default defineConfig({
  worker: { format: "iife" },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: "es2022",
    reportCompressedSize: false,
    rolldownOptions: { output: { minify: true } },
    lib: { entry: "src/widget/widget.ts", formats: ["es"], fileName: () => "widget.js" },
  },
  plugins: [{ name: "style", closeBundle: () => copyFileSync("src/widget/widget.css", `${OUT}/widget.css`) }],
});
