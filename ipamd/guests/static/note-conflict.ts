import type { CloudError } from '../../../cloud/cloud-error.ts';
import type { ClaimRefusal } from '../../calls/node-deps.ts';
import type { ClaimsTerm } from './claims-term.ts';

type ConflictDeps = Pick<ClaimsTerm, 'conflicts' | 'queues'>;

/**
 * Notes that another resource has a claim's address, with the cloud's text, and enqueues the claim; `holder`: the resource,
 * where known.
 */
export function noteConflict(
  { conflicts, queues }: ConflictDeps,
  key: string,
  ips: readonly string[],
  message: string,
  holder?: string,
): void {
  conflicts.add(key, ips, message, holder);
  queues.claims.add(key);
}

/** Error codes of the cloud for an address that another resource has. */
const TAKEN_CODES: readonly CloudError['code'][] = ['ResourceInUse', 'InvalidParameterValue.Duplicate'];

/** Notes that the cloud refused a claim's requested address because another resource has it. */
export function noteRefusal(deps: ConflictDeps, key: string, { ips, code, message }: ClaimRefusal): void {
  if (ips.length === 0 || !TAKEN_CODES.some((one) => code.startsWith(one))) return;
  noteConflict(deps, key, ips, `${code}: ${message}`);
}
