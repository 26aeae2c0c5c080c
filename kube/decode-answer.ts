import { isRecord } from '../runtime/decode.ts';
import type { KubeObject, ListPage, ResourceType } from './kube-client.ts';
import { KubeError } from './kube-error.ts';
import { apiVersionOf } from './resource-types.ts';

/** Decodes an object as far as every object goes: it has metadata with a name. Pure. @throws KubeError BAD_ANSWER */
export function decodeObject(value: unknown, request: string, type: ResourceType): KubeObject {
  if (!isRecord(value) || !isRecord(value['metadata']) || typeof value['metadata']['name'] !== 'string') {
    throw new KubeError({ code: 'BAD_ANSWER', request, text: 'the answer is no object' });
  }
  // The items of a list of a built-in kind come without them.
  const named = value['kind'] === undefined ? { apiVersion: apiVersionOf(type), kind: type.kind, ...value } : value;
  // Whatever else is in it is for its own decoder to judge.
  return named as KubeObject;
}

/** Decodes a page of a list. Pure. @throws KubeError BAD_ANSWER */
export function decodeList(value: unknown, request: string, type: ResourceType): ListPage {
  const metadata = isRecord(value) && isRecord(value['metadata']) ? value['metadata'] : {};
  const version = metadata['resourceVersion'];
  if (!isRecord(value) || typeof version !== 'string') {
    throw new KubeError({ code: 'BAD_ANSWER', request, text: 'the answer is no list' });
  }
  const items: readonly unknown[] = Array.isArray(value['items']) ? value['items'] : [];
  const token = metadata['continue'];
  return {
    items: items.map((item) => decodeObject(item, request, type)),
    resourceVersion: version,
    ...(typeof token === 'string' && token !== '' ? { continueToken: token } : {}),
  };
}
