import { isNetlinkError } from '../../netlink/netlink-error.ts';
import { NetnsError } from '../../netlink/netns.ts';
import { isSysctlError } from '../../sysctl/sysctl-error.ts';
import type { ContractMachine } from './machine.ts';

/**
 * What a kernel is asked, and what a program then sees: of the real one and of its model alike. `run` returns what it saw as
 * plain data.
 */
export type ContractCase = {
  readonly what: string;
  run(machine: ContractMachine): unknown;
  readonly sees: unknown;
};

/** Returns the code of the error of a request, `ok` when there is none. @throws any other error */
export function codeOf(request: () => unknown): string {
  try {
    request();
    return 'ok';
  } catch (error) {
    if (isNetlinkError(error) || isSysctlError(error) || error instanceof NetnsError) return error.code;
    throw error;
  }
}

/** As `codeOf`, of work in the background. */
export async function codeLater(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'ok';
  } catch (error) {
    if (isNetlinkError(error)) return error.code;
    throw error;
  }
}
