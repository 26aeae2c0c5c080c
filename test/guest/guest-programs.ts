/** Paths of our programs in a guest. The addon of agent and tke-eni lies beside them. */
export const GUEST_PROGRAMS = {
  agent: '/opt/tke-eni/tke-eni-agent',
  addon: '/opt/tke-eni/ffi-rs.node',
  /** The launcher, which hands calls to the agent. */
  plugin: '/opt/tke-eni/tke-route-eni',
  cli: '/opt/tke-eni/tke-eni',
} as const;
