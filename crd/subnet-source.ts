import { createHash } from 'node:crypto';
import { recordOf } from '../runtime/json.ts';

/** Where the ConfigMap with the subnets of the cluster is. */
type ConfigMapRef = { readonly namespace: string; readonly name: string };

/**
 * Renders which content of which ConfigMap something was made from, as `NAMESPACE/NAME@DIGEST`. Equal data give equal text,
 * whatever else of the object is written. A ConfigMap that is not there counts as one without data.
 */
export function renderSubnetSource({ namespace, name }: ConfigMapRef, data: unknown): string {
  const entries = Object.entries(recordOf(data)).sort(([one], [other]) => (one < other ? -1 : 1));
  const digest = createHash('sha256').update(JSON.stringify(entries)).digest('hex').slice(0, DIGEST_DIGITS);
  return `${namespace}/${name}@${digest}`;
}

/** Reads the ConfigMap out of such a text; undefined for any other text. */
export function readSubnetSource(text: string | undefined): ConfigMapRef | undefined {
  const [, namespace, name] = /^([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253})@[0-9a-f]{16}$/.exec(text ?? '') ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

const DIGEST_DIGITS = 16;
