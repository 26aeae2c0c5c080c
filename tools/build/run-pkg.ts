/**
 * Packages one bundled file: `node tools/build/run-pkg.ts ENTRY OUTPUT NODE [FLAG…]`, absolute paths and Node's flags. A process of its own, for
 * pkg changes its working directory and writes to standard output, which its callers (test workers among them) may not.
 */
import { createRequire } from 'node:module';
import { seaOptions } from './sea-options.ts';

/** Is pkg's call for a single bundled file; from its command line our options cannot be given. */
type Sea = (entry: string, options: Readonly<Record<string, unknown>>) => Promise<void>;

const { default: sea } = createRequire(import.meta.url)('@yao-pkg/pkg/lib-es5/sea.js') as { readonly default: Sea };
const [entry = '', output = '', nodePath = '', ...execArgv] = process.argv.slice(2);
const { version, platform, arch } = process;
const targets = [{ nodeRange: `node${version.slice(1)}`, platform, arch, output }];
await sea(entry, { targets, signature: false, nodePath, seaConfig: seaOptions(execArgv) });
