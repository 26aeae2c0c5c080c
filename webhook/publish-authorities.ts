import type { KubeClient } from '../kube/kube-client.ts';
import { MUTATING_WEBHOOK_CONFIGURATIONS } from '../kube/resource-types.ts';
import { isRecord } from '../runtime/decode.ts';

/**
 * Writes the authorities into each webhook of a MutatingWebhookConfiguration, so that API servers trust our certificate.
 * Writes nothing where they are there already, or where there is no such object: then API servers ask nothing. Idempotent.
 * @param authorities certificates in PEM
 * @throws KubeError
 */
export async function publishAuthorities(
  kube: Pick<KubeClient, 'get' | 'patch'>,
  configuration: string,
  authorities: string,
): Promise<void> {
  const ref = { name: configuration };
  const object = await kube.get(MUTATING_WEBHOOK_CONFIGURATIONS, ref);
  const caBundle = Buffer.from(authorities).toString('base64');
  const webhooks: readonly unknown[] = Array.isArray(object?.['webhooks']) ? object['webhooks'] : [];
  const body = webhooks.flatMap((webhook, index) => {
    if (!isRecord(webhook) || !isRecord(webhook['clientConfig'])) return [];
    if (webhook['clientConfig']['caBundle'] === caBundle) return [];
    return [
      // The list may have changed since it was read.
      { op: 'test', path: `/webhooks/${index}/name`, value: webhook['name'] },
      { op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value: caBundle },
    ];
  });
  if (body.length > 0) await kube.patch(MUTATING_WEBHOOK_CONFIGURATIONS, ref, { kind: 'json', body });
}
