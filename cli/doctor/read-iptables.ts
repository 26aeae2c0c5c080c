import { execFile } from 'node:child_process';
import { known, unknown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';
import type { IptablesFacts } from './doctor-facts.ts';

const TIMEOUT_MS = 20_000;
/** Tens of thousands of Services. */
const MAX_BYTES = 128 * 1024 * 1024;

/** Where to look, and what is known of it before. */
export type IptablesReading = {
  /** Undefined: this process's own namespace. */
  readonly netnsPath: string | undefined;
  /** Of /proc/net/ip_tables_names and ip6_tables_names. */
  readonly legacyTables: readonly string[];
};

/**
 * Reads the rules of both backends. The legacy programs are run only where the kernel says that legacy tables are there:
 * asking would make them.
 */
export async function readIptables({ netnsPath, legacyTables }: IptablesReading): Promise<IptablesFacts> {
  const save = async (backend: 'legacy' | 'nft'): Promise<Known<readonly string[]>> => {
    const [ipv4, ipv6] = await Promise.all(
      [`iptables-${backend}-save`, `ip6tables-${backend}-save`].map((program) => runSave(program, netnsPath)),
    );
    if (ipv4 === undefined || ipv4.kind === 'unknown') return ipv4 ?? unknown('nothing was run', 'report this');
    return known([...ipv4.value, ...(ipv6?.kind === 'known' ? ipv6.value : [])]);
  };
  const legacy = legacyTables.length === 0 ? known([]) : save('legacy');
  return { legacyTables, legacy: await legacy, nft: await save('nft') };
}

function runSave(program: string, netnsPath: string | undefined): Promise<Known<readonly string[]>> {
  const [file = '', ...args] = netnsPath === undefined ? [program] : ['nsenter', `--net=${netnsPath}`, program];
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
  return new Promise((resolve) => {
    execFile(
      file,
      args,
      { timeout: TIMEOUT_MS, maxBuffer: MAX_BYTES, encoding: 'utf8', env },
      (error, stdout, stderr) =>
        resolve(
          error === null ? known(stdout.split('\n').filter((line) => line !== '')) : whyNot(program, error, stderr),
        ),
    );
  });
}

function whyNot(program: string, error: Error, stderr: string): Known<never> {
  const text = stderr.trim().split('\n', 1)[0] || error.message;
  if (/ENOENT|failed to execute/.test(text)) {
    return unknown(`${program} is not installed here`, 'run the doctor on the host, or install iptables');
  }
  if (/permitted|Permission denied|must be root/i.test(text)) {
    return unknown('iptables shows itself to root only', 'run as root, or with CAP_NET_ADMIN');
  }
  return unknown(`${program}: ${text}`, `try ${program} by hand`);
}
