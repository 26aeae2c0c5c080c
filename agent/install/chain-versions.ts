import { execFile } from 'node:child_process';
import { join } from 'node:path';

/** What a network configuration says about CNI versions. @see CNI SPEC 1.1, "Section 1: Network configuration format" */
export type ConfVersions = {
  /** For runtimes that know no `cniVersions`. */
  readonly cniVersion: string;
  /** All that the whole chain speaks; a runtime that knows the field takes the highest that it speaks too. */
  readonly cniVersions: readonly string[];
};

/** Versions that our plugin is offered in, oldest first. 0.4.0 is the first with CHECK, and old chains speak it. */
const OFFERED_VERSIONS = ['0.4.0', '1.0.0', '1.1.0'] as const;
/** Newest that runtimes without `cniVersions` know: a 1.1.0 there makes containerd 1.6 and 1.7 refuse the file. */
const NEWEST_WITHOUT_LIST = '1.0.0';
/** A plugin answers in some 10 ms; on a starting node, disks are busy. */
const ANSWER_MS = 10_000;

/**
 * Decides in which versions a chain can be called. Pure.
 * @param spoken for each plugin chained after ours, the versions that it speaks.
 */
export function decideVersions(spoken: readonly (readonly string[])[]): ConfVersions {
  const common = OFFERED_VERSIONS.filter((version) => spoken.every((versions) => versions.includes(version)));
  const cniVersions = common.length > 0 ? common : [OFFERED_VERSIONS[0]];
  const cniVersion = cniVersions.findLast((version) => version <= NEWEST_WITHOUT_LIST) ?? NEWEST_WITHOUT_LIST;
  return { cniVersion, cniVersions };
}

/**
 * Asks a plugin which versions it speaks.
 * @throws the error of running it, or one that says how its answer reads. @see CNI SPEC, "VERSION"
 */
export async function readSpokenVersions(binDir: string, name: string): Promise<readonly string[]> {
  const answer = await ask(join(binDir, name));
  const said: unknown = JSON.parse(answer);
  const versions =
    typeof said === 'object' && said !== null && 'supportedVersions' in said ? said.supportedVersions : undefined;
  if (Array.isArray(versions) && versions.every((version) => typeof version === 'string')) return versions;
  throw new Error(`${join(binDir, name)} answers VERSION without supportedVersions: ${answer.slice(0, 200)}`);
}

function ask(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { CNI_COMMAND: 'VERSION', PATH: '' };
    const child = execFile(path, { env, timeout: ANSWER_MS, encoding: 'utf8' }, (error, stdout) => {
      if (error === null) resolve(stdout);
      else reject(error);
    });
    // One that ends without reading says so by its exit code.
    child.stdin?.on('error', () => {});
    child.stdin?.end(JSON.stringify({ cniVersion: NEWEST_WITHOUT_LIST }));
  });
}
