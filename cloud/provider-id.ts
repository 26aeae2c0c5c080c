/**
 * What the providerID of a Node names.
 * - `none`: there is none.
 * - `instance`: a CVM instance. `isNative`: in the form of native nodes, whose Nodes the cluster service owns.
 * - `other`: something of this cloud that is no CVM instance: a native machine (`kn-…`), a super node (`eklet-…`).
 * - `foreign`: another provider's.
 * - `malformed`: the scheme is this cloud's, and the rest is in no known form.
 */
export type ProviderId =
  | { readonly kind: 'none' }
  | { readonly kind: 'instance'; readonly instanceId: string; readonly zone?: string; readonly isNative: boolean }
  | { readonly kind: 'other'; readonly id: string }
  | { readonly kind: 'foreign' }
  | { readonly kind: 'malformed' };

/** The forms in which a providerID is written: with the name of the zone, or with its number as TKE does. */
export type ProviderIdForm = 'tencentcloud' | 'qcloud';

const INSTANCE = /^ins-[a-z0-9]{4,32}$/;
const OTHER = /^(?:kn|eklet)-[a-z0-9]{4,32}$/;
const OURS = /^(?:qcloud|tencentcloud):/;
/** `tencentcloud:///ap-guangzhou-3/ins-x`, `qcloud:///100003/ins-x`. */
const WITH_ZONE = /^(?:qcloud|tencentcloud):\/\/\/?([^/]*)\/([^/]+)$/;
/** `tencentcloud://ins-x`, `tencentcloud://kn-x`. */
const WITHOUT_ZONE = /^(?:qcloud|tencentcloud):\/\/([^/]+)$/;

/** Reads `spec.providerID` of a Node in each form that is in use; accepts any value. */
export function readProviderId(value: unknown): ProviderId {
  if (value === undefined || value === null || value === '') return { kind: 'none' };
  if (typeof value !== 'string') return { kind: 'malformed' };
  const [, zone, id] = WITH_ZONE.exec(value) ?? [];
  if (id !== undefined && INSTANCE.test(id))
    return { kind: 'instance', instanceId: id, ...(zone ? { zone } : {}), isNative: false };
  const bare = WITHOUT_ZONE.exec(value)?.[1];
  if (bare !== undefined && INSTANCE.test(bare)) return { kind: 'instance', instanceId: bare, isNative: true };
  const other = id ?? bare;
  if (other !== undefined && OTHER.test(other)) return { kind: 'other', id: other };
  return { kind: OURS.test(value) ? 'malformed' : 'foreign' };
}

/** Reads the instance id from a providerID or a bare id; undefined for anything else. */
export function instanceIdOf(value: unknown): string | undefined {
  if (typeof value === 'string' && INSTANCE.test(value)) return value;
  const read = readProviderId(value);
  return read.kind === 'instance' ? read.instanceId : undefined;
}

/** Renders a providerID; `zone` is the name of the zone for `tencentcloud`, its number for `qcloud`. */
export function renderProviderId(form: ProviderIdForm, zone: string, instanceId: string): string {
  return `${form}:///${zone}/${instanceId}`;
}

/** The readable forms, for messages. */
export const PROVIDER_ID_FORMS =
  'tencentcloud:///ZONE/ins-…, qcloud:///ZONE-NUMBER/ins-…, tencentcloud://ins-… or tencentcloud://kn-…';
