import type { Tags } from '../../cloud/cloud.ts';
import { renderRight } from '../../kube/ask-rights.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { listPages } from '../../kube/list-pages.ts';
import { INGRESSES, SERVICES } from '../../kube/resource-types.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type OwnerKind, uidOf } from './balancer-owner.ts';

/** The cached objects that load balancers were made for. */
export type Owners = Pick<Informer<KubeObject>, 'isSynced' | 'values'>;

const PROBLEM = 'orphans of ingresses';
const LIST_INGRESSES = { verb: 'list', group: INGRESSES.group, resource: INGRESSES.plural };
const RESOURCES = { service: SERVICES, ingress: INGRESSES } as const;

/**
 * The uids of all objects that load balancers may be for, whether they have any or not. What was made for an object of a kind
 * that is not looked at counts as another program's.
 */
export class LivingOwners {
  readonly #deps: Pick<ControllerDeps, 'kube' | 'log' | 'metrics' | 'config'>;
  readonly #caches: { readonly service: Owners; readonly ingress: Owners | undefined };
  #uids: ReadonlyMap<OwnerKind, ReadonlySet<string>> = new Map();

  /** @param ingresses undefined: Ingresses are not served, and not looked at */
  constructor(
    deps: Pick<ControllerDeps, 'kube' | 'log' | 'metrics' | 'config'>,
    services: Owners,
    ingresses: Owners | undefined,
  ) {
    this.#deps = deps;
    this.#caches = { service: services, ingress: ingresses };
  }

  /** What the owners are, one and many, for people. */
  get names(): readonly [string, string] {
    const { ingress } = this.#caches;
    return ingress === undefined ? ['Service', 'Services'] : ['Service or Ingress', 'Services or Ingresses'];
  }

  /**
   * Reads all of them again. Ingresses are included only after their cache has synced and while they may be listed: their
   * rights may be missing, or be taken. @throws KubeError
   */
  async read(signal: AbortSignal): Promise<void> {
    const { log, metrics } = this.#deps;
    const { service, ingress } = this.#caches;
    const uids = new Map<OwnerKind, ReadonlySet<string>>([['service', await this.#uidsOf('service', service, signal)]]);
    if (ingress?.isSynced === true)
      try {
        uids.set('ingress', await this.#uidsOf('ingress', ingress, signal));
        metrics.problems.reportOfTerm(PROBLEM, []);
      } catch (error) {
        if (!isKubeError(error, 'FORBIDDEN')) throw error;
        log.error('orphaned load balancers of Ingresses are not looked for: Ingresses may not be listed', { error });
        const problem = { kind: 'Forbidden', name: `${PROBLEM}: ${renderRight(LIST_INGRESSES)}` };
        metrics.problems.reportOfTerm(PROBLEM, [problem]);
      }
    this.#uids = uids;
  }

  /** Reads the uids of all objects of a kind, of the cache and of the API server: either one may be of a while ago. */
  async #uidsOf(kind: OwnerKind, owners: Owners, signal: AbortSignal): Promise<Set<string>> {
    const uids = new Set([...owners.values()].map(({ metadata }) => metadata.uid ?? ''));
    for await (const { items } of listPages(this.#deps.kube, RESOURCES[kind], {}, signal))
      for (const { metadata } of items) uids.add(metadata.uid ?? '');
    return uids;
  }

  /** Returns which object this program made something for in this cluster; undefined: none of the kinds that are looked at. */
  ownerOf(made: { readonly tags: Tags }): { readonly kind: OwnerKind; readonly uid: string } | undefined {
    const owners = [...this.#uids.keys()].flatMap((kind) => {
      const uid = uidOf(this.#deps.config.clusterId, made.tags, kind);
      return uid === undefined ? [] : [{ kind, uid }];
    });
    return owners[0];
  }

  /** Reports whether the object that something was made for still exists. */
  has(made: { readonly tags: Tags }): boolean {
    const owner = this.ownerOf(made);
    return owner !== undefined && this.#uids.get(owner.kind)?.has(owner.uid) === true;
  }
}
