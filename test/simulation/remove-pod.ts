import { ADMIN } from '../../sim/kube-api/auth/tokens.ts';
import type { InProcessApi } from '../../sim/kube-api/in-process.ts';
import type { KubeObject } from '../../sim/kube-api/object.ts';
import { dispatch } from '../../sim/kube-api/verbs/dispatch.ts';

/** Removes the object of a Pod at once, as a kubelet does whose Pod has ended; not that of another Pod of its name. */
export function removePod({ api }: InProcessApi, { metadata: { namespace, name, uid } }: KubeObject): void {
  if (api.store.get('/pods', `${namespace}/${name}`)?.metadata.uid !== uid) return;
  const resource = api.registry.find('', 'v1', 'pods');
  if (resource === undefined) throw new Error('there are no Pods');
  const query = new URLSearchParams('gracePeriodSeconds=0');
  const about = { resource, namespace, name, subresource: '', query, contentType: '', body: {} };
  dispatch(api, 'delete', { ...about, user: ADMIN, userAgent: 'kubelet' });
}
