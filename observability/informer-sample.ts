import type { Informer } from '../kube/informer.ts';

/** State of an informer. */
export type InformerSample = {
  readonly resource: string;
  readonly isSynced: boolean;
  readonly size: number;
  /** Monotonic milliseconds. */
  readonly lastContactMs: number;
};

/** Returns samples of informers with their names, for health and metrics. */
export function sampleInformers(
  informers: Readonly<Record<string, Informer<unknown> | undefined>>,
): readonly InformerSample[] {
  return Object.entries(informers).flatMap(([resource, informer]) => {
    if (informer === undefined) return [];
    const { isSynced, size, lastContactMs } = informer;
    return [{ resource, isSynced, size, lastContactMs }];
  });
}
