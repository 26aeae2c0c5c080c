import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { CniError } from './error.ts';

/** Lists the CNI versions that we speak, oldest first. */
export const SUPPORTED_VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;

/** Is one of the CNI versions that we speak. */
export type CniVersion = (typeof SUPPORTED_VERSIONS)[number];

/** Is the newest version that we speak: what we answer in when the caller's is unknown. */
export const NEWEST_VERSION: CniVersion = '1.1.0';

/** Lists the commands of CNI_COMMAND. */
export const COMMANDS = ['ADD', 'DEL', 'CHECK', 'STATUS', 'GC', 'VERSION'] as const;

/** Is one of the commands of CNI_COMMAND. */
export type Command = (typeof COMMANDS)[number];

/** Says since which version a command exists. @see https://www.cni.dev/docs/spec/#section-2-execution-protocol */
const SINCE = { ADD: '0.3.0', DEL: '0.3.0', CHECK: '0.4.0', STATUS: '1.1.0', GC: '1.1.0', VERSION: '0.3.0' } as const;

/**
 * Accepts a conf's cniVersion for a command.
 *
 * @param wanted the conf's cniVersion; absent means 0.1.0, says the specification.
 * @throws CniError code 1 with both lists when we do not speak it or it has no such command.
 */
export function acceptVersion(wanted: string | undefined, command: Command): CniVersion {
  const version = SUPPORTED_VERSIONS.find((candidate) => candidate === wanted);
  if (version === undefined) {
    const said = wanted === undefined ? '0.1.0 (the conf has no cniVersion)' : wanted;
    throw new CniError(
      CNI_CODE.incompatibleVersion,
      `CNI version ${said} is not supported`,
      `conf: [${said}]; plugin: [${SUPPORTED_VERSIONS.join(', ')}]; set cniVersion in the network configuration to one of the latter`,
    );
  }
  if (!isAtLeast(version, SINCE[command])) {
    throw new CniError(
      CNI_CODE.incompatibleVersion,
      `CNI version ${version} has no command ${command}`,
      `${command} exists since ${SINCE[command]}; conf: [${version}]; plugin: [${SUPPORTED_VERSIONS.join(', ')}]`,
    );
  }
  return version;
}

/** Compares two versions by their place in the list. */
export function isAtLeast(version: CniVersion, least: CniVersion): boolean {
  return SUPPORTED_VERSIONS.indexOf(version) >= SUPPORTED_VERSIONS.indexOf(least);
}

/**
 * Renders the answer to VERSION in the caller's version, as the specification asks; in our newest when it named none that we speak.
 */
export function renderVersions(wanted: string | undefined): string {
  const cniVersion = SUPPORTED_VERSIONS.find((candidate) => candidate === wanted) ?? NEWEST_VERSION;
  return JSON.stringify({ cniVersion, supportedVersions: SUPPORTED_VERSIONS });
}
