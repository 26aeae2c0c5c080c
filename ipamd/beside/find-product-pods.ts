import { hasPodEnded } from '../../crd/pod-fields.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';
import { listOf, recordOf, textOf } from '../../runtime/json.ts';

/** Pods of ipamd have one of these labels, the product's and ours. */
export const IPAMD_SELECTORS: readonly string[] = [
  'k8s-app in (tke-eni-ipamd,eniipamd)',
  'app in (tke-eni-ipamd,eniipamd)',
];

const OWN_LABEL = { key: 'app.kubernetes.io/name', value: 'tke-eni' } as const;
const OWN_CONTAINER = 'ipamd';
/** The last part of an image's name, without its tag. */
const IPAMD_IMAGE = /(^|\/)[^/:@]*ipamd[^/:@]*([:@]|$)/;

/**
 * Finds Pods of the product's ipamd that are not ended: without the label that only ours have, or ours with a container of it
 * beside, which happens when our manifests are applied over its workload.
 * @returns `namespace/name`, with the container where it is one
 */
export function findProductPods(pods: readonly KubeObject[]): readonly string[] {
  const alive = pods.filter((pod) => !hasPodEnded(recordOf(pod['status'])));
  const names = alive.flatMap((pod) => {
    const { namespace = '', name, labels } = pod.metadata;
    if (labels?.[OWN_LABEL.key] !== OWN_LABEL.value) return [`${namespace}/${name}`];
    const beside = listOf(recordOf(pod['spec'])['containers']).filter(isRecord).filter(isOfProduct);
    return beside.map((container) => `${namespace}/${name}, container ${textOf(container['name'])}`);
  });
  return [...new Set(names)].sort();
}

function isOfProduct({ name, image }: Readonly<Record<string, unknown>>): boolean {
  return name !== OWN_CONTAINER && IPAMD_IMAGE.test(textOf(image));
}
