/** Set by the build; absent when the sources run as they are. */
declare const TKE_ENI_RELEASE: string | undefined;

/** Release of this agent, for logs, replies and `--version`. */
export const AGENT_RELEASE: string = typeof TKE_ENI_RELEASE === 'string' ? TKE_ENI_RELEASE : 'source';
