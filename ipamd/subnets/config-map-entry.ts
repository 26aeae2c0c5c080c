import type { KubeObject } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';

/** What ipamd keeps of the ConfigMap with the subnets. */
export type ConfigMapEntry = {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly data: Readonly<Record<string, unknown>>;
};

/** Trims a ConfigMap; any shape is read. Pure. */
export function decodeConfigMap(object: KubeObject): ConfigMapEntry {
  const { name, namespace = '', uid = '' } = object.metadata;
  return { name, namespace, uid, data: isRecord(object['data']) ? object['data'] : {} };
}
