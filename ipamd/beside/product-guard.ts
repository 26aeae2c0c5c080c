import { hasPodEnded } from '../../crd/pod-fields.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { PODS } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import { isRecord } from '../../runtime/decode.ts';
import { Gate } from '../../runtime/gate.ts';
import { listOf, recordOf, textOf } from '../../runtime/json.ts';
import type { Logger } from '../../runtime/log.ts';
import { noteSilence } from '../crds/install-definitions.ts';

/** Dependencies of the guard; one for a process. */
type ProductGuardDeps = {
  readonly client: Pick<KubeClient, 'listPage'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Where Pods of the product are looked for: it is in kube-system, ours may be elsewhere. */
  readonly namespaces: readonly string[];
  /** Called with the sentence when a Pod of the product appears, and with undefined once none is there. */
  readonly report: (problem: string | undefined) => void;
};

const CHECK_MS = 10_000;
const SHOWN = 3;

/**
 * Keeps ipamd from working beside the product's own: both would write definitions and objects of the same names, and each
 * would take the other's ENIs and EIPs for lost ones. While a Pod of the product is there nothing is written and no cloud is called.
 */
export class ProductGuard {
  readonly #deps: ProductGuardDeps;
  readonly #gate = new Gate();

  constructor(deps: ProductGuardDeps) {
    this.#deps = deps;
  }

  /** Aborted when a Pod of the product appears; another signal once it is gone. */
  get appeared(): AbortSignal {
    return this.#gate.closed;
  }

  /**
   * Looks for Pods of the product until a look finds none; `onFailed` is called with the reason of each look without an answer. Ends
   * without a result when the signal aborts. Never rejects.
   */
  async untilAlone(signal: AbortSignal, onFailed: (problem: string) => void): Promise<void> {
    while (!signal.aborted) {
      const failure = await this.#look(signal);
      if (failure === undefined && this.#gate.isOpen) return;
      if (failure !== undefined) onFailed(failure);
      await this.#deps.clock.sleep(CHECK_MS, signal).catch(() => {});
    }
  }

  /** Looks all the time until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#deps.clock.sleep(CHECK_MS, signal).catch(() => {});
      if (!signal.aborted) await this.#look(signal);
    }
  }

  /** Resolves when no Pod of the product is there. Rejects with the signal's reason. */
  async untilGone(signal: AbortSignal): Promise<void> {
    await this.#gate.untilOpen(signal);
  }

  /** Returns why there was no answer; nothing changes then. A missing right finds nothing. */
  async #look(signal: AbortSignal): Promise<string | undefined> {
    const { log, report } = this.#deps;
    let found: readonly string[];
    try {
      found = findProductPods(await this.#list(signal));
    } catch (error) {
      if (signal.aborted || !isKubeError(error)) throw error;
      if (error.code === 'FORBIDDEN') return undefined;
      const silence = noteSilence(log, error);
      if (silence !== undefined) return silence;
      log.warn('Pods of the product were not looked for', { error });
      return `Pods of the product were not looked for: ${error.message}`;
    }
    if (found.length === 0) {
      if (this.#gate.open()) {
        log.info('no ipamd of the product runs any more');
        report(undefined);
      }
      return undefined;
    }
    const problem = `the product's own ipamd runs (${found.slice(0, SHOWN).join('; ')}): nothing is written and no cloud is called beside it; scale its workload to 0, or set --beside-product=ignore if it is no ipamd of the product`;
    if (this.#gate.close(problem)) log.error(problem);
    report(problem);
    return undefined;
  }

  async #list(signal: AbortSignal): Promise<readonly KubeObject[]> {
    const queries = [...new Set(this.#deps.namespaces)].flatMap((namespace) =>
      IPAMD_SELECTORS.map((labelSelector) => ({ namespace, labelSelector })),
    );
    const pages = await Promise.all(queries.map((query) => this.#deps.client.listPage(PODS, query, signal)));
    return pages.flatMap(({ items }) => items);
  }
}

/** Pods of ipamd have one of these labels, the product's and ours. */
const IPAMD_SELECTORS: readonly string[] = ['k8s-app in (tke-eni-ipamd,eniipamd)', 'app in (tke-eni-ipamd,eniipamd)'];

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
