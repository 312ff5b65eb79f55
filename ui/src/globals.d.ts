declare module "*?worker&url" {
  const url: string;
  export default url;
}
declare module "*.css";
declare module "graphology-layout-forceatlas2/iterate" {
  const iterate: (settings: object, nodes: Float32Array, edges: Float32Array) => void;
  export default iterate;
}
interface Window {
  trustedTypes?: {
    createPolicy(name: string, rules: { createScriptURL(url: string): string }): {
      createScriptURL(url: string): string;
    };
  };
}
declare module "*?worker&inline" {
  const LayoutWorker: new () => Worker;
  export default LayoutWorker;
}
