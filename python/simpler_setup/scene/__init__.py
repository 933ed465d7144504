"""The scene-test framework, in parts.

    declarations   @scene_test, levels, and the check of CALLABLE and CASES
    arguments      TaskArgsBuilder and its specs
    arrays         torch tensors, NumPy arrays and buffers seen alike
    task_args      builder + signature -> arguments of a run
    compare        outputs against golden values, and the report
    selection      which cases of which classes run
    callables      compiling a class's sources
    handles        one registration per worker and class
    case           SceneTestCase, the base class
    workers        opening and closing level-2 workers
    runs           running the cases of a class; artifact folders; rounds table
    options        the options that both front ends share
    standalone     `python test_x.py -p a2a3sim`
    dispatch       its child processes

Front ends: `standalone` and `simpler_setup.pytest_plugin`. Users import from `simpler_setup`.
"""
