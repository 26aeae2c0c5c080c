import type { Attachment } from '../../agent/api/messages.ts';
import type { PrevResult } from './conf.ts';

/**
 * Lists how the result that the runtime stored from ADD differs from what the agent holds. Additions of later plugins
 * in the chain are not a difference.
 *
 * @param attachment what the agent holds; absent when its release does not report it.
 */
export function comparePrevResult(
  prevResult: PrevResult,
  attachment: Attachment | undefined,
  ifName: string,
  shape: 'main' | 'ipam',
): readonly string[] {
  const differences: string[] = [];
  const addresses = prevResult.ips.map(({ address }) => String(address));
  if (addresses.length === 0) differences.push('prevResult: no address');
  for (const { address } of attachment?.ips ?? []) {
    if (!addresses.includes(address)) {
      differences.push(`prevResult: the agent holds ${address}, prevResult has ${addresses.join(', ') || 'none'}`);
    }
  }
  if (shape === 'main') {
    const ours = prevResult.interfaces.find(({ name, sandbox }) => name === ifName && isText(sandbox));
    if (ours === undefined) differences.push(`prevResult: no interface ${ifName} in a sandbox`);
    const actual = attachment?.interfaces.find(({ name, sandbox }) => name === ifName && sandbox !== '');
    if (ours !== undefined && actual !== undefined && isText(ours['mac']) && ours['mac'].toLowerCase() !== actual.mac) {
      differences.push(`prevResult: ${ifName} has MAC ${ours['mac']}, the agent holds ${actual.mac}`);
    }
  }
  return differences;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
