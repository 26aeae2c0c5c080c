import { execFile } from 'node:child_process';
import { join } from 'node:path';

/** The CNI versions in a network configuration. @see CNI SPEC 1.1, "Section 1: Network configuration format" */
export type ConfVersions = {
  /** For runtimes that do not support `cniVersions`. */
  readonly cniVersion: string;
  /**
   * All versions that the whole chain supports; a runtime that knows the field takes the highest that it supports too.
   */
  readonly cniVersions: readonly string[];
};

/**
 * Versions that our plugin offers, oldest first. 0.4.0 is the first with CHECK, and old plugins of a chain support it.
 */
const OFFERED_VERSIONS = ['0.4.0', '1.0.0', '1.1.0'] as const;
/** Newest version that runtimes without `cniVersions` accept: with 1.1.0 containerd 1.6 and 1.7 refuse the file. */
const NEWEST_WITHOUT_LIST = '1.0.0';
/** Timeout of a plugin's answer, which takes some 10 ms; on a starting node, disks are busy. */
const ANSWER_MS = 10_000;

/**
 * Decides in which versions a chain can be called.
 * @param supported For each plugin chained after ours, the versions that it supports.
 */
export function decideVersions(supported: readonly (readonly string[])[]): ConfVersions {
  const common = OFFERED_VERSIONS.filter((version) => supported.every((versions) => versions.includes(version)));
  const cniVersions = common.length > 0 ? common : [OFFERED_VERSIONS[0]];
  const cniVersion = cniVersions.findLast((version) => version <= NEWEST_WITHOUT_LIST) ?? NEWEST_WITHOUT_LIST;
  return { cniVersion, cniVersions };
}

/**
 * Reads which versions a plugin supports, by calling it.
 * @throws the error of running it, or one with its answer. @see CNI SPEC, "VERSION"
 */
export async function readSupportedVersions(binDir: string, name: string): Promise<readonly string[]> {
  const answer = await runVersion(join(binDir, name));
  const reply: unknown = JSON.parse(answer);
  const versions =
    typeof reply === 'object' && reply !== null && 'supportedVersions' in reply ? reply.supportedVersions : undefined;
  if (Array.isArray(versions) && versions.every((version) => typeof version === 'string')) return versions;
  throw new Error(`${join(binDir, name)} answers VERSION without supportedVersions: ${answer.slice(0, 200)}`);
}

function runVersion(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { CNI_COMMAND: 'VERSION', PATH: '' };
    const child = execFile(path, { env, timeout: ANSWER_MS, encoding: 'utf8' }, (error, stdout) => {
      if (error === null) resolve(stdout);
      else reject(error);
    });
    // A plugin that ends without reading shows why by its exit code.
    child.stdin?.on('error', () => {});
    child.stdin?.end(JSON.stringify({ cniVersion: NEWEST_WITHOUT_LIST }));
  });
}
