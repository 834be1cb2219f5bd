// Writes dist/: the whole page in files that the program carries inside itself.
import { build } from 'esbuild';
import { copyFileSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('.', import.meta.url)));
rmSync('dist', { recursive: true, force: true });
await build({
  entryPoints: [{ in: 'src/main.js', out: 'app' }, { in: 'src/app.css', out: 'app' }],
  outdir: 'dist',
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  footer: { js: `/*! uPlot\n${readFileSync('node_modules/uplot/LICENSE', 'utf8')}*/` }, // asks to go where its code goes
  logLevel: 'warning',
});
for (const name of ['index.html', 'early.js', 'icon.svg']) copyFileSync(`src/${name}`, `dist/${name}`);
