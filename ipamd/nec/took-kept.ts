import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { NodeView } from './node-view.ts';
import { isShared } from './with-enis.ts';

/**
 * Tells whether a new ENI was born with a kept address as its own, which was on no ENI and free for anybody in the cloud:
 * the ENI has to go again for the address to come back. One that has been attached serves Pods, and is left alone. Pure.
 */
export function hasTakenKept({ reservedIps }: Pick<NodeView, 'reservedIps'>, eni: NodeEniInfo): boolean {
  const { primaryIP, state, assignmentID } = eni;
  const isNew = isShared(eni) && state === 'Attaching' && assignmentID === undefined;
  return isNew && primaryIP !== undefined && reservedIps?.has(primaryIP) === true;
}
