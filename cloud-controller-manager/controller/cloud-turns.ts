/**
 * How calls to the cloud are in turn. Their owners are namespaces: every other call is that of the owner that was served
 * longest ago, so that the urgent calls of one do not stop all others.
 */
export const CLOUD_TURNS = { blindEvery: 2 } as const;
