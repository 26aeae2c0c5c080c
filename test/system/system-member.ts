import type { Cluster } from './cluster.ts';
import type { Door } from './door.ts';
import type { VpcCloud } from './vpc-cloud.ts';

/** A node as a system handles it, whatever runs its Pods. */
export type SystemMember = {
  readonly name: string;
  readonly cores: number;
  /** The Pods that run here. */
  readonly pods: readonly { readonly name: string; readonly ip: string }[];
  /** Starts the agent. */
  startAgent(): Promise<void>;
  /** What is wrong on this node, each in one line. */
  violations(): Promise<readonly string[]>;
  /** The agent's log. */
  logs(): string;
  /** Ends everything that runs on the node. */
  close(): Promise<void>;
};

/** What a node of a system is made of. */
export type SystemMemberParts = {
  readonly name: string;
  readonly cores: number;
  /** Folder of its files. */
  readonly dir: string;
  readonly cloud: VpcCloud;
  readonly cluster: Cluster;
  /** Where the agent reaches the API server. */
  readonly kube: Door;
  /** With a token of the agent's own. */
  readonly kubeconfig: string;
  /** Of the agent. */
  readonly flags: Readonly<Record<string, string | boolean>>;
};
