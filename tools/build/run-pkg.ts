/**
 * Packages one bundled file: `node tools/build/run-pkg.ts ENTRY OUTPUT NODE ASSETS [FLAG…]`, absolute
 * paths, a JSON object of assets (name to path) and Node's flags. A process of its own, for
 * pkg changes its working directory and writes to standard output, which its callers (test workers among them) may not.
 */
import childProcess, { type ExecFileOptions } from 'node:child_process';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { GENERATOR_FLAGS, seaOptions } from './sea-options.ts';

/** Is pkg's call for a single bundled file; from its command line our options cannot be given. */
type Sea = (entry: string, options: Readonly<Record<string, unknown>>) => Promise<void>;

const generated = seedGenerator();
const { default: sea } = createRequire(import.meta.url)('@yao-pkg/pkg/lib-es5/sea.js') as { readonly default: Sea };
const [entry = '', output = '', nodePath = '', assets = '{}', ...execArgv] = process.argv.slice(2);
const { version, platform, arch } = process;
const targets = [{ nodeRange: `node${version.slice(1)}`, platform, arch, output }];
await sea(entry, { targets, signature: false, nodePath, seaConfig: seaOptions(execArgv, JSON.parse(assets)) });
if (generated.count !== 1) {
  throw new Error(`pkg ran Node for a blob ${generated.count} times, not once: it changed; see lib-es5/sea.js`);
}

/**
 * Gives flags to the Node that makes the blob, for which pkg has no option and NODE_OPTIONS no leave. To be called before
 * pkg is loaded.
 */
function seedGenerator(): { readonly count: number } {
  const seen = { count: 0 };
  const original = promisify(childProcess.execFile);
  const seeded = (file: string, args: readonly string[] = [], options: ExecFileOptions = {}): unknown => {
    if (!args.includes('--experimental-sea-config')) return original(file, args, options);
    seen.count += 1;
    return original(file, [...GENERATOR_FLAGS, ...args], options);
  };
  // pkg calls the promisified form only.
  Object.defineProperty(childProcess, 'execFile', { value: Object.assign(() => {}, { [promisify.custom]: seeded }) });
  return seen;
}
