import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import type { NodeView } from './node-view.ts';
import { isShared } from './with-enis.ts';

/**
 * Tells whether a new ENI has a static address as its primary one. The address was on no ENI, so the cloud could assign
 * it to a new ENI. The ENI has to be deleted so that the address is free again. An ENI that was attached serves Pods
 * and is left unchanged.
 */
export function hasTakenStaticIp({ reservedIps }: Pick<NodeView, 'reservedIps'>, eni: NodeEniInfo): boolean {
  const { primaryIP, state, assignmentID } = eni;
  const isNew = isShared(eni) && state === 'Attaching' && assignmentID === undefined;
  return isNew && primaryIP !== undefined && reservedIps?.has(primaryIP) === true;
}
