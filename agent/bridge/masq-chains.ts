import { execFile } from 'node:child_process';

/** A tool gets so long; both answer within milliseconds. */
const TIMEOUT_MS = 5_000;
/** Most bytes of an answer. Rules of 5,000 Services take two megabytes. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Lists the chains of the nat table, by backend of iptables. */
const COMMANDS = [
  ['nft', '-t', 'list', 'chains', 'ip'],
  ['iptables-legacy-save', '-t', 'nat'],
] as const;

/**
 * Finds the chains of ip-masq-agent in the nat tables of both backends of iptables. Runs two tools of the host's network
 * namespace. Undefined when neither could be run.
 */
export async function readMasqChains(): Promise<readonly string[] | undefined> {
  const outputs = await Promise.all(COMMANDS.map(([file, ...args]) => run(file, args)));
  if (outputs.every((output) => output === undefined)) return undefined;
  return masqChainsOf(outputs.join('\n'));
}

/** Extracts the names of ip-masq-agent's chains from what `nft list chains` or `iptables-save` print. */
export function masqChainsOf(text: string): readonly string[] {
  const names = [...text.matchAll(/(?:^\s*chain |^:)(IP-MASQ[A-Z-]{0,24})/gm)].map(([, name = '']) => name);
  return [...new Set(names)];
}

async function run(file: string, args: readonly string[]): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  execFile(file, [...args], { timeout: TIMEOUT_MS, maxBuffer: MAX_BYTES }, (error, stdout) => {
    resolve(error === null ? stdout : undefined);
  });
  return await promise;
}
