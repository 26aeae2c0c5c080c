import { RESERVED_AT_ANNOTATION } from '../../crd/names.ts';
import { VPC_IP_CLAIM_KIND } from '../../crd/vpc-ip-claim.ts';
import { updateGuarded } from '../../kube/guarded-update.ts';
import type { KubeClient, KubeObject, ObjectRef } from '../../kube/kube-client.ts';
import { resourceTypeOf } from '../../kube/resource-types.ts';
import { recordOf } from '../../runtime/json.ts';

const CLAIMS = resourceTypeOf(VPC_IP_CLAIM_KIND);

/** The node that an address is reserved for, and the start of the reservation (RFC 3339). Both together identify it. */
export type ClaimReservation = { readonly nodeName: string; readonly at: string };

/**
 * Writes a reservation into the claim of a Pod. It replaces an existing one: the scheduler binds a Pod to one node at a
 * time, so an earlier attempt failed. Returns false when the claim does not exist.
 * @throws KubeError
 */
export async function reserveClaim(
  client: KubeClient,
  { namespace, name }: ObjectRef,
  { nodeName, at }: ClaimReservation,
  signal: AbortSignal,
): Promise<boolean> {
  const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
  const written = await updateGuarded(client, CLAIMS, ref, (current) => withReservation(current, nodeName, at), {
    signal,
  });
  return written !== undefined;
}

/** Removes a reservation from the claim, unless another one has replaced it. @throws KubeError */
export async function unreserveClaim(
  client: KubeClient,
  { namespace, name }: ObjectRef,
  { nodeName, at }: ClaimReservation,
  signal: AbortSignal,
): Promise<void> {
  const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
  const change = (current: KubeObject): KubeObject | undefined => {
    const isOurs =
      current.metadata.annotations?.[RESERVED_AT_ANNOTATION] === at && specOf(current)['nodeName'] === nodeName;
    return isOurs ? withReservation(current, undefined, undefined) : undefined;
  };
  await updateGuarded(client, CLAIMS, ref, change, { signal });
}

function withReservation(current: KubeObject, nodeName: string | undefined, at: string | undefined): KubeObject {
  const { nodeName: _name, ...spec } = specOf(current);
  const { [RESERVED_AT_ANNOTATION]: _at, ...annotations } = current.metadata.annotations ?? {};
  return {
    ...current,
    metadata: {
      ...current.metadata,
      annotations: { ...annotations, ...(at === undefined ? {} : { [RESERVED_AT_ANNOTATION]: at }) },
    },
    spec: { ...spec, ...(nodeName === undefined ? {} : { nodeName }) },
  };
}

function specOf(object: KubeObject): Readonly<Record<string, unknown>> {
  const spec = object['spec'];
  return recordOf(spec);
}
