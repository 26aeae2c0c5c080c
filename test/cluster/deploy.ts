import type { RealCluster } from './real-cluster.ts';

/** What of the project is brought into a cluster. */
export type DeploySpec = {
  /** Flags that the agent gets besides. */
  readonly agentFlags?: readonly string[];
};

/** What was brought. */
export type Deployed = { readonly manifests: string };

/** TODO */
export async function deploy(_cluster: RealCluster, _spec: DeploySpec): Promise<Deployed> {
  throw new Error('no');
}
