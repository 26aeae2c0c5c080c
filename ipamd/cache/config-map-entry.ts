import type { KubeObject } from '../../kube/kube-client.ts';
import { recordOf } from '../../runtime/json.ts';

/** What ipamd caches of the ConfigMap with the subnets. */
export type ConfigMapEntry = {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly data: Readonly<Record<string, unknown>>;
};

/** Decodes a ConfigMap; accepts any shape. */
export function decodeConfigMap(object: KubeObject): ConfigMapEntry {
  const { name, namespace = '', uid = '' } = object.metadata;
  return { name, namespace, uid, data: recordOf(object['data']) };
}
