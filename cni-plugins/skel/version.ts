import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { CniError } from './error.ts';

/** The supported CNI versions, oldest first. */
export const SUPPORTED_VERSIONS = ['0.2.0', '0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;

/** One of the supported CNI versions. */
export type CniVersion = (typeof SUPPORTED_VERSIONS)[number];

/** The newest supported version: the version of answers when the caller's is unknown. */
export const NEWEST_VERSION: CniVersion = '1.1.0';

/** The commands of CNI_COMMAND. */
export const COMMANDS = ['ADD', 'DEL', 'CHECK', 'STATUS', 'GC', 'VERSION'] as const;

/** One of the commands of CNI_COMMAND. */
export type Command = (typeof COMMANDS)[number];

/** The version that introduced each command. @see https://www.cni.dev/docs/spec/#section-2-execution-protocol */
const SINCE = { ADD: '0.2.0', DEL: '0.2.0', CHECK: '0.4.0', STATUS: '1.1.0', GC: '1.1.0', VERSION: '0.2.0' } as const;

/**
 * Checks that a conf's cniVersion supports a command, and returns it.
 *
 * @param requested the conf's cniVersion; absent means 0.1.0 by the specification.
 * @throws CniError code 1 with both lists when the version is not supported or does not have the command.
 */
export function acceptVersion(requested: string | undefined, command: Command): CniVersion {
  const version = SUPPORTED_VERSIONS.find((candidate) => candidate === requested);
  if (version === undefined) {
    const shown = requested === undefined ? '0.1.0 (the conf has no cniVersion)' : requested;
    throw new CniError(
      CNI_CODE.incompatibleVersion,
      `CNI version ${shown} is not supported`,
      `conf: [${shown}]; plugin: [${SUPPORTED_VERSIONS.join(', ')}]; set cniVersion in the network configuration to one of the latter`,
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

/** Compares two versions by their position in the list. */
export function isAtLeast(version: CniVersion, minimum: CniVersion): boolean {
  return SUPPORTED_VERSIONS.indexOf(version) >= SUPPORTED_VERSIONS.indexOf(minimum);
}

/**
 * Renders the answer to VERSION in the caller's version, as the specification requires; in the newest one when the
 * caller's is absent or unsupported.
 */
export function renderVersions(requested: string | undefined): string {
  const cniVersion = SUPPORTED_VERSIONS.find((candidate) => candidate === requested) ?? NEWEST_VERSION;
  return JSON.stringify({ cniVersion, supportedVersions: SUPPORTED_VERSIONS });
}
