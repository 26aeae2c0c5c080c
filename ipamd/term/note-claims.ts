import type { CloudError } from '../../cloud/cloud-error.ts';
import type { ClaimRefusal } from '../calls/node-deps.ts';
import type { ClaimWait } from '../decide/decision.ts';
import { MIN_WAIT_MS } from '../static/claim-waits.ts';
import type { ClaimsTerm } from '../static/claims-term.ts';

/** Error codes of the cloud for an address that another resource has. */
const TAKEN_CODES: readonly CloudError['code'][] = ['ResourceInUse', 'InvalidParameterValue.Duplicate'];

/** Notes that the cloud refused a claim's requested address because another resource has it. */
export function noteRefusal({ conflicts, queues }: ClaimsTerm, key: string, refusal: ClaimRefusal): void {
  const { ips, code, message } = refusal;
  if (ips.length === 0 || !TAKEN_CODES.some((one) => code.startsWith(one))) return;
  conflicts.add(key, ips, `${code}: ${message}`);
  queues.claims.add(key);
}

/** Notes why claims wait on a node; claims that wait for a while are enqueued. */
export function noteWaits({ waits, queues }: ClaimsTerm, node: string, reasons: ReadonlyMap<string, ClaimWait>): void {
  for (const key of waits.note(node, reasons)) queues.claims.addAfter(key, MIN_WAIT_MS);
}
