import type { Informer } from '../../kube/informer.ts';
import type { Subnets } from '../subnets/open-subnets.ts';
import type { InstanceBook } from './instance-book.ts';
import type { MachineEntry } from './machine-entry.ts';
import type { NodeController } from './node-controller.ts';
import { isSameNode, type NodeEntry } from './node-entry.ts';

/** Where news about nodes comes from. */
export type NodeNews = {
  readonly nodes: Pick<Informer<NodeEntry>, 'subscribe'>;
  /** Absent where the cluster has no Machines. */
  readonly machines?: Pick<Informer<MachineEntry>, 'subscribe'>;
  readonly necs: Pick<Informer<unknown>, 'subscribe' | 'keys'>;
  readonly instances: InstanceBook;
  readonly subnets: Pick<Subnets, 'subscribe'>;
  readonly controller: Pick<NodeController, 'nodesOf'>;
};

/** Who is told the names of nodes that something is new about: the node controller's queue, and that of their supply. */
export type NodeListeners = { readonly onNode: (name: string) => void; readonly onSupply: (name: string) => void };

/** Turns what changes into names of nodes to look at, heartbeats left out. Returns the way to stop. */
export function followNodes(news: NodeNews, { onNode, onSupply }: NodeListeners): () => void {
  const onBoth = (name: string): void => {
    onNode(name);
    onSupply(name);
  };
  const stops = [
    news.nodes.subscribe(({ key, before, after }) => {
      if (before === undefined || after === undefined || !isSameNode(before, after)) onBoth(key);
    }),
    news.machines?.subscribe(({ before, after }) => {
      for (const name of new Set([...(before?.nodeNames ?? []), ...(after?.nodeNames ?? [])])) onNode(name);
    }),
    news.necs.subscribe(({ key }) => onNode(key)),
    news.instances.subscribe((instanceId) => {
      for (const name of news.controller.nodesOf(instanceId)) onBoth(name);
    }),
    news.subnets.subscribe(() => {
      for (const name of news.necs.keys()) onSupply(name);
    }),
  ];
  return () => {
    for (const stop of stops) stop?.();
  };
}
